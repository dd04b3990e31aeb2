package catalog

// A FileWrite is what one API write does to the files, for the git history: who asked for it, and the content of each
// file before and after. It is kept durably until it is in a commit.
type FileWrite struct {
	ID         int64 // given by the journal that keeps the write; larger for a later write
	Author     Author
	Message    string // X-Change-Message; "": none
	Subject    string // what changes, in one line
	Generation uint64 // from which on readers see the change; 0: not known
	Files      []FileEdit
	Trace      string `json:",omitempty"` // traceparent of the span that the write is part of; "": it is not traced
}

// A FileEdit is the change of one file.
type FileEdit struct {
	Path   string // slash-separated, below the config folder, links resolved
	Before []byte // nil: the file did not exist
	After  []byte // nil: the file is removed
}

// A WriteCommit says which git commit has an API write.
type WriteCommit struct {
	RequestID  string
	Generation uint64 // as in FileWrite
	Commit     string
}
