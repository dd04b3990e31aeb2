package publicnet

import "cmp"

// program is apart from the slash: .ci/module-path renames texts that begin with the path of the module.
const program = "fingerpost"

// UserAgent returns the User-Agent of requests to what tenants name, so that an operator there knows who asks. version is the
// program's; without one it is "unknown".
func UserAgent(version string) string { return program + "/" + cmp.Or(version, "unknown") }
