"""One file for each kind of attention that models of transformers compute by code of their own."""
