package store

import "fingerpost/resolver/catalog"

// A Preview reads the state of the store as it will be once the present change is committed. It may be used only in the
// committing call that got it, on one goroutine. Its results are valid until its next call.
type Preview struct {
	bulk *bulk

	value, other []byte // last read value of a domain, and of a project by itself
	projectCopy  []byte // see Reader
	owner        int64
	key          []byte // scratch
}

// get reads the value that a key will have, nil for none.
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
	p.projectCopy = nil
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
	p.projectCopy, p.owner = project, dst.ProjectID
	return true, nil
}

// Project is View.Project. If dst has an SMTP config, it is reused as memory for the project's.
func (p *Preview) Project(dst *catalog.ProjectConfig, id int64) (found bool, err error) {
	value := p.projectCopy
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
