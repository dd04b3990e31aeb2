project {                            # ERROR: needs a label: its slug
  name = "A"
}
project "a" "b" {                    # ERROR: has one label only
  name = "A"
}
project "Big Slug" {                 # ERROR: lower-case letters
  name = "A"
}
project "resolve" {                  # ERROR: is a word of the API
  name = ""                          # ERROR: is required and must not be blank
  uuid = "123"                       # ERROR: uuid: a uuid is 32 hexadecimal digits
  id   = 0                           # ERROR: id: must be from 1 to 2147483647
  domain {}                          # ERROR: needs a label: the host name
  domain "a..example" {}             # ERROR: empty label
  domain "a.example:80" {}           # ERROR: must not carry a port
  domain "1.2.3.4" {}                # ERROR: IP address
  domain "*.*.example" {}            # ERROR: may have one "*" only
  domain "x.example" { uuid = "new" } # ERROR: is for projects only
  service_settings "x" {}            # ERROR: has no label
  template "t" {
    name             = "T"
    subject_template = "s"
    body_text        = "t"
    id               = 2147483648    # ERROR: id: must be from 1 to 2147483647
  }
}
project "empty" {}                   # ERROR: attribute "name" is missing
key "-" {                            # ERROR: a key's name has # ERROR: "id" is missing # ERROR: "hash" is missing # ERROR: "allow" is missing
}
