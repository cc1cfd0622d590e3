"""The mesh builder. gmsh itself is loaded only when a mesh is built."""
