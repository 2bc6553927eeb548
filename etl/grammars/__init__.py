"""Which record grammars do several providers share? One module each; grammars know nothing of providers."""
