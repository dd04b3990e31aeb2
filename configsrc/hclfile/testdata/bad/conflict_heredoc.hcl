# ERROR@+5: unresolved merge conflict
template "A" {
  name             = "A"
  subject_template = "s"
  body_text        = <<EOT
<<<<<<< HEAD
Hello
=======
Goodbye
>>>>>>> other
EOT
}
