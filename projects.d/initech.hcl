# Not live yet: DRAFT projects resolve like active ones.
project "initech" {
  name = "Initech"

  domain "localhost" { primary = true } # a single label is fine inside a network
}
