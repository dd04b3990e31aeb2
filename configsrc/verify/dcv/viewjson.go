package dcv

import (
	"encoding/json"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// A moment is a time as the API writes it: UTC, microseconds, no zone suffix (api/README.md, Answers).
type moment time.Time

func (m *moment) MarshalText() ([]byte, error) {
	return []byte(catalog.Moment(time.Time(*m))), nil
}

func (m *moment) UnmarshalText(text []byte) error {
	t, err := catalog.ParseMoment(string(text))
	if err != nil {
		return fmt.Errorf("%q is no time in UTC such as 2026-01-31T09:30:00.123456", text)
	}
	*m = moment(t)
	return nil
}

// A viewJSON is a View with moments for its times.
type viewJSON struct {
	Ready     bool `json:"ready"`
	Ownership struct {
		State     string  `json:"state"`
		Since     *moment `json:"since"`
		Spreading bool    `json:"spreading"`
		Misses    int     `json:"misses"`
	} `json:"ownership"`
	Pointing struct {
		State     string   `json:"state"`
		Since     *moment  `json:"since"`
		Addresses []string `json:"addresses"`
	} `json:"pointing"`
	Certificate struct {
		State     string  `json:"state"`
		Since     *moment `json:"since"`
		Issuer    *string `json:"issuer"`
		ExpiresAt *moment `json:"expiresAt"`
	} `json:"certificate"`
	Records     []recordJSON `json:"records"`
	Hints       []Hint       `json:"hints"`
	CheckedAt   *moment      `json:"checkedAt"`
	NextCheckAt *moment      `json:"nextCheckAt"`
}

type recordJSON struct {
	Purpose     string      `json:"purpose"`
	Type        string      `json:"type"`
	Name        string      `json:"name"`
	Host        string      `json:"host"`
	Value       string      `json:"value"`
	Alternative bool        `json:"alternative"`
	Found       []foundJSON `json:"found"`
}

type foundJSON struct {
	Server string   `json:"server"`
	Values []string `json:"values"`
	Error  *string  `json:"error"`
	At     *moment  `json:"at"`
}

// MarshalJSON writes v as the API answers it. Lists are written as lists, also where v has nil.
func (v View) MarshalJSON() ([]byte, error) {
	w := viewJSON{Ready: v.Ready, Records: []recordJSON{}, Hints: append([]Hint{}, v.Hints...),
		CheckedAt: (*moment)(v.CheckedAt), NextCheckAt: (*moment)(v.NextCheckAt)}
	w.Ownership.State, w.Ownership.Since = v.Ownership.State, (*moment)(v.Ownership.Since)
	w.Ownership.Spreading, w.Ownership.Misses = v.Ownership.Spreading, v.Ownership.Misses
	w.Pointing.State, w.Pointing.Since = v.Pointing.State, (*moment)(v.Pointing.Since)
	w.Pointing.Addresses = append([]string{}, v.Pointing.Addresses...)
	w.Certificate.State, w.Certificate.Since = v.Certificate.State, (*moment)(v.Certificate.Since)
	w.Certificate.Issuer, w.Certificate.ExpiresAt = v.Certificate.Issuer, (*moment)(v.Certificate.ExpiresAt)
	for i := range v.Records {
		r := &v.Records[i]
		record := recordJSON{r.Purpose, r.Type, r.Name, r.Host, r.Value, r.Alternative, []foundJSON{}}
		for j := range r.Found {
			f := &r.Found[j]
			record.Found = append(record.Found,
				foundJSON{f.Server, append([]string{}, f.Values...), f.Error, (*moment)(&f.At)})
		}
		w.Records = append(w.Records, record)
	}
	return json.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *View) UnmarshalJSON(b []byte) error {
	var w viewJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	o, p, c := &w.Ownership, &w.Pointing, &w.Certificate
	*v = View{
		Ready:       w.Ready,
		Ownership:   OwnershipView{o.State, (*time.Time)(o.Since), o.Spreading, o.Misses},
		Pointing:    PointingView{p.State, (*time.Time)(p.Since), p.Addresses},
		Certificate: CertificateView{c.State, (*time.Time)(c.Since), c.Issuer, (*time.Time)(c.ExpiresAt)},
		Hints:       w.Hints, CheckedAt: (*time.Time)(w.CheckedAt), NextCheckAt: (*time.Time)(w.NextCheckAt),
	}
	for i := range w.Records {
		r := &w.Records[i]
		record := RecordView{r.Purpose, r.Type, r.Name, r.Host, r.Value, r.Alternative, nil}
		for j := range r.Found {
			f := &r.Found[j]
			found := FoundView{Server: f.Server, Values: f.Values, Error: f.Error}
			if f.At != nil {
				found.At = time.Time(*f.At)
			}
			record.Found = append(record.Found, found)
		}
		v.Records = append(v.Records, record)
	}
	return nil
}
