package catalog

// A SenderLine is one finding about a project's sender, as the API answers it.
type SenderLine struct {
	Level   string  `json:"level"`
	Check   string  `json:"check"`
	Message string  `json:"message"`
	Record  *string `json:"record"` // to set, as in a zone file; nil: none
}

// A SenderResult is what a check of a project's sender has found.
type SenderResult struct {
	State     string       `json:"state"`
	Lines     []SenderLine `json:"lines"`
	CheckedAt JSONMoment   `json:"checkedAt"`
}

// A SenderHeaders is what the server that has taken a test mail says of it.
type SenderHeaders struct {
	State  string       `json:"state"`  // the worst level of all lines; error without the header
	Server string       `json:"server"` // whose word the lines are; "": the mail has no such header
	Lines  []SenderLine `json:"lines"`
	Mail   []SenderLine `json:"mail"`   // what the mail's own headers show of one-click unsubscribe; none without a link
	Others []string     `json:"others"` // servers that have written into the mail, too, and are not believed
}
