"""Base: the words of the project and the ground under all other rooms."""
