package store

import "fingerpost/resolver/catalog"

// A Preview reads what the store is going to say once the change at hand is committed. It is of use only within the
// committing function that it was handed to, for one goroutine. What it returns is valid until its next call.
type Preview struct {
	bulk *bulk

	value, other []byte // what was read last of domains, and of projects by themselves
	beside       []byte // see Reader
	owner        int64
	key          []byte // scratch
}

// get reads the value of a key, nil if it is going to have none.
func (p *Preview) get(buf, key []byte) ([]byte, error) {
	if r := p.bulk.find(key); r != nil {
		if r.gone {
			return nil, nil
		}
		return p.bulk.value(buf, r)
	}
	found, err := now{p.bulk.s.db}.get(key, func(value []byte) error {
		buf = append(buf[:0], value...)
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	return buf, nil
}

// Domain is View.Domain.
func (p *Preview) Domain(dst *catalog.Domain, name []byte) (found bool, err error) {
	p.beside = nil
	p.key = appendDomainKey(p.key[:0], name)
	value, err := p.get(p.value, p.key)
	if err != nil || value == nil {
		return false, err
	}
	p.value = value
	domain, project := split(value)
	d := borrowingDecoder(domain, recordVersion)
	if err := d.domain(dst); err != nil {
		return true, err
	}
	p.beside, p.owner = project, dst.ProjectID
	return true, nil
}

// Project is View.Project. Where dst has an SMTP config, that is the room for the project's.
func (p *Preview) Project(dst *catalog.ProjectConfig, id int64) (found bool, err error) {
	value := p.beside
	if len(value) == 0 || id != p.owner {
		p.key = appendProjectKey(p.key[:0], id)
		if value, err = p.get(p.other, p.key); err != nil || value == nil {
			return false, err
		}
		p.other = value
	}
	d := borrowingDecoder(value, recordVersion)
	return true, d.projectConfig(dst, id)
}
