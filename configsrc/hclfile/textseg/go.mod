module github.com/apparentlymart/go-textseg/v15

go 1.26

require github.com/apparentlymart/go-textseg/v17 v17.0.1
