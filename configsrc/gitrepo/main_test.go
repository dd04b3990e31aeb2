package gitrepo_test

import (
	"testing"

	"fingerpost/cmd/testrig"
)

func TestMain(m *testing.M) { testrig.Main(m) }
