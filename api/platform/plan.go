package platform

import "fingerpost/resolver/catalog"

// A Planner compares the declarations of the files that a dry run would change, before and after, and returns a value
// whose JSON is that of "fingerpost plan --json". It owns the declarations. defaults are those in force.
type Planner func(was, is []*catalog.Declared, defaults *catalog.Defaults) any
