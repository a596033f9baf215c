"""The server in a process of its own, so that connections, HTTP and TLS cost the worker nothing.

That process reads requests, and passes them on to the worker over a socket between the two, as many at a time as have
come; the worker's answers go back in the same way. It ends with the worker.
"""
