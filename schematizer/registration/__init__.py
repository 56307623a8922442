"""The act of registering: `register` a description, `decide` which topic its schemas belong to, and `assign` them."""
