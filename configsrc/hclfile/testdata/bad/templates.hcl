template "A" {                       # ERROR: needs a body_html, a body_text or both
  name             = "A"
  subject_template = "s"
}
template "B" {                       # ERROR: "subject_template" is missing # ERROR: "name" is missing
  body_html = file("mail/none.html") # ERROR: cannot read the file "mail/none.html"
}
template "C" {
  name             = "C"
  subject_template = "two {{a b}}"   # ERROR: subject_template: what stands in double braces
  body_html        = file("mail/broken.html")  # ERROR: body_html: line 1, column 10
  body_text        = <<-EOT
    one
    two {{}} # ERROR: body_text: what stands in double braces
  EOT
}
template "D" {
  name             = "D"
  subject_template = "s"
  body_html        = file("mail/latin1.html")  # ERROR: is not UTF-8 text
  body_text        = file("a\\b")    # ERROR: forward slashes
}
template "E" {
  name             = "E"
  subject_template = "s"
  body_html        = file("./a//b")  # ERROR: write the path without
  body_text        = file("")        # ERROR: the path is empty
  max_age          = "soon"          # ERROR: must be a number with a unit
}
template "bad code" {                # ERROR: letters, digits, underscores
  name             = "F"
  subject_template = "s"
  body_text        = "t"
}
template "A" {                       # ERROR: the first is at testdata/bad/templates.hcl:1:10
  name             = "A"
  subject_template = "s"
  body_text        = "t"
}
