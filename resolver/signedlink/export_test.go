package signedlink

type Links = links

var New = newLinks
