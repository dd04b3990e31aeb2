package now

// ItemOf and Pages are seen by the tests.
var (
	ItemOf = itemOf
	Pages  = pages
)
