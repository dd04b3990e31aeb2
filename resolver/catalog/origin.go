package catalog

// An Origin says where a value in force comes from. The zero Origin is the built-in value.
type Origin struct {
	File     string // as messages name it; "" for a built-in value
	Line     int
	Defaults bool // the line is in the defaults block
}

// Origins are the origins of a noun's values, by the API's field name.
type Origins map[string]Origin

// An Explained is a project with the origin of each of its values.
type Explained struct {
	// Config has the settings and the SMTP config in force. The times are zero: files do not declare them.
	Config  ProjectConfig
	Project Origins   // id, uuid and slug too
	Domains []Origins // in the order of Config.Domains; id and domain too
	Service Origins
	Auth    Origins
	SMTP    Origins // nil if there is no config in force
}

// Part lists the fields of the object of a kind as they are in force, and where they come from. id tells domains apart.
// nil: the project has none.
func (x *Explained) Part(k Kind, id int64) ([]Field, Origins) {
	c := &x.Config
	switch k {
	case KindProject:
		return c.Project.AllFields(), x.Project
	case KindDomain:
		for i := range x.Domains {
			if c.Domains[i].ID == id {
				return c.Domains[i].AllFields(), x.Domains[i]
			}
		}
	case KindServiceSettings:
		return c.Service.Fields(), x.Service
	case KindAuthSettings:
		return c.Auth.Fields(), x.Auth
	case KindSMTPConfig:
		if c.SMTP != nil {
			return c.SMTP.Fields(), x.SMTP
		}
	}
	return nil, nil
}
