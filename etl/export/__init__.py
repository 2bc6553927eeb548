"""How does a store leave as files that other tools read?"""
