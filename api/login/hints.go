package login

import "fingerpost/resolver/catalog"

// RefusalHints says which claims nearly match rules of the block, for a person whom no rule lets in.
func RefusalHints(l *catalog.Login, c catalog.Claims) []string { return nil }
