project "a" {
  name = "A"
  labels = {
    Plan      = "gold"        # ERROR: did you mean `plan`?
    data-zone = "x"           # ERROR: did you mean `data_zone`?
    "a b"     = "x"           # ERROR: did you mean `a_b`?
    "1st"     = "x"           # ERROR: begins with a letter
    "${x}"    = "x"           # ERROR: begins with a letter
    (x)       = "x"           # ERROR: begins with a letter
    a.b       = "x"           # ERROR: did you mean `a_b`?
    1         = 2             # ERROR: begins with a letter # ERROR: attribute "labels" wants a string, found a number
    plan      = "gold"
    plan      = "silver"      # ERROR: label "plan" is there twice
    number    = 3             # ERROR: attribute "labels.number" wants a string, found a number
    bool      = true          # ERROR: write it in double quotes
    nothing   = null          # ERROR: to set nothing, leave the line out
    list      = ["x"]         # ERROR: attribute "labels.list" wants a string, found a list
    inner     = { a = "b" }   # ERROR: attribute "labels.inner" wants a string, found a map
    ref       = gold          # ERROR: if a string is meant, write it in double quotes
    sum       = 1 + 2         # ERROR: references and expressions are not allowed
    if        = "a ${b}"      # ERROR: references and expressions are not allowed
    env       = env("X")      # ERROR: env() cannot stand here: attribute "labels.env"
    lines     = "a\nb"        # ERROR: labels.lines: must hold printable characters only
    long      = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" # ERROR: has 257 characters, 256 are allowed
  }
  domain "a.example" { certificates = "true" } # ERROR: write true without quotes
  domain "b.example" { certificate = true }    # ERROR: did you mean `certificates`?
  domain "c.example" { certificates = [] }     # ERROR: wants true or false, found a list
}

project "b" {
  name   = "B"
  labels = ["plan"]           # ERROR: wants a map of strings such as { plan = "gold" }, found a list
}

project "c" {
  name   = "C"
  label  = { a = "b" }        # ERROR: did you mean `labels`?
}

project "d" {
  name   = "D"
  labels = null               # ERROR: to set nothing, leave the line out
}

project "e" {
  name   = "E"
  labels = "plan=gold"        # ERROR: wants a map of strings
}

project "f" {
  name   = "F"
  labels { plan = "gold" }    # ERROR: "labels" is an attribute: write labels = …
}

project "g" {
  name   = "G"
  labels = { for k in x : k => "v" } # ERROR: references and expressions are not allowed
}

project "h" {
  name = "H"
  labels = {
    a0 = "", a1 = "", a2 = "", a3 = "", a4 = "", a5 = "", a6 = "", a7 = "", a8 = "", a9 = "",
    b0 = "", b1 = "", b2 = "", b3 = "", b4 = "", b5 = "", b6 = "", b7 = "", b8 = "", b9 = "",
    c0 = "", c1 = "", c2 = "", c3 = "", c4 = "", c5 = "", c6 = "", c7 = "", c8 = "", c9 = "",
    d0 = "", d1 = "",
    d2 = ""                   # ERROR: labels: 32 labels are allowed
    d3 = ""
  }
}
