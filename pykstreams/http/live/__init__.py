"""The live page: facts of the running application, and the page that shows them."""
