"""Commands that ask a running application over HTTP."""
