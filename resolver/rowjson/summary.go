package rowjson

import "fingerpost/resolver/catalog"

// A Summary is a project with what a list for people shows of it (api/README.md, Projects).
type Summary struct {
	catalog.Project
	Primary string // the primary domain; the first by name where none is primary, "" where there is none
	Domains int
	Mail    string // MailOn, MailOff or MailNoServer
	File    string // that declares it, below the config folder; "": not known
}

// The mail of a project: whether its settings in force let it send.
const (
	MailOn       = "ON"
	MailOff      = "OFF"
	MailNoServer = "NO_SERVER" // it is switched on, and has no active SMTP config
)

// AppendSummary appends a summary to dst: the project in the API's form, and what the list shows of it.
func AppendSummary(dst []byte, s *Summary) []byte {
	dst = AppendProject(dst, &s.Project)
	more := object(
		"labels", s.Labels,
		"primaryDomain", nullIf(s.Primary == "", s.Primary),
		"domainCount", s.Domains,
		"mail", s.Mail,
		"file", nullIf(s.File == "", s.File))
	dst[len(dst)-1] = ','
	return append(dst, more[1:]...)
}
