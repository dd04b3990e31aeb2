# ERROR@+3: unresolved merge conflict
project "acme" {
  name = "Acme"
<<<<<<< HEAD
  status = "ACTIVE"
=======
  status = "DRAFT"
>>>>>>> other
}
