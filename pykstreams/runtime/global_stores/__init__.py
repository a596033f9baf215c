"""Global stores: fed from whole topics by a thread of their own."""
