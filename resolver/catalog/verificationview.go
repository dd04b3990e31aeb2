package catalog

import "encoding/json"

// A VerificationView is a domain's verification as the API, the CLI and the console show it (api/platform/README.md,
// Verification).
type VerificationView struct {
	Ready       bool               `json:"ready"`
	Ownership   OwnershipView      `json:"ownership"`
	Pointing    PointingView       `json:"pointing"`
	Certificate CertificateView    `json:"certificate"`
	Records     []RecordView       `json:"records"`
	Hints       []VerificationHint `json:"hints"`
	CheckedAt   *JSONMoment        `json:"checkedAt"`   // nil: never
	NextCheckAt *JSONMoment        `json:"nextCheckAt"` // nil: not planned
}

// MarshalJSON writes lists as lists, also where v has nil.
func (v VerificationView) MarshalJSON() ([]byte, error) {
	type plain VerificationView
	v.Records, v.Hints = append([]RecordView{}, v.Records...), append([]VerificationHint{}, v.Hints...)
	v.Pointing.Addresses = append([]string{}, v.Pointing.Addresses...)
	return json.Marshal(plain(v))
}

// An OwnershipView says whose the domain is.
type OwnershipView struct {
	State     string      `json:"state"` // trusted, pending, proven, failing or lost
	Since     *JSONMoment `json:"since"`
	Spreading bool        `json:"spreading"`
	Misses    int         `json:"misses"`
}

// A PointingView says where the domain leads.
type PointingView struct {
	State     string      `json:"state"` // here, elsewhere, nowhere, spreading or unknown
	Since     *JSONMoment `json:"since"`
	Addresses []string    `json:"addresses"`
}

// A CertificateView is the state of the domain's certificate.
type CertificateView struct {
	State     string      `json:"state"` // good, expiring, wrong, none or unknown
	Since     *JSONMoment `json:"since"`
	Issuer    *string     `json:"issuer"`
	ExpiresAt *JSONMoment `json:"expiresAt"`
}

// A RecordView is a record to set, and what each server says about it.
type RecordView struct {
	Purpose     string      `json:"purpose"` // ownership or pointing
	Type        string      `json:"type"`
	Name        string      `json:"name"`
	Host        string      `json:"host"` // Name within its zone, as DNS forms want it; "@" at the top
	Value       string      `json:"value"`
	Alternative bool        `json:"alternative"` // another record of the same purpose is enough
	Found       []FoundView `json:"found"`
}

// A FoundView is what one server says about a record.
type FoundView struct {
	Server string     `json:"server"`
	Values []string   `json:"values"`
	Error  *string    `json:"error"`
	At     JSONMoment `json:"at"`
}

// A VerificationHint says what is wrong, and gives the line to set.
type VerificationHint struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    string `json:"line"`
}
