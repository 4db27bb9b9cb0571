package kubeserver

import "strings"

// selector is what objects must have to be shown.
type selector struct{ labels, fields []requirement }

type requirement struct {
	name, value string
	not, exists bool // value is not looked at when exists
}

func (s selector) empty() bool { return len(s.labels)+len(s.fields) == 0 }

// requirements reads "a=b,c!=d,e,!f".
func requirements(text string) []requirement {
	var all []requirement
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		var r requirement
		name, value, ok := strings.Cut(part, "=")
		switch {
		case ok && strings.HasSuffix(name, "!"):
			r = requirement{name: strings.TrimSuffix(name, "!"), value: value, not: true}
		case ok:
			r = requirement{name: name, value: strings.TrimPrefix(value, "=")}
		default:
			r = requirement{name: strings.TrimPrefix(name, "!"), exists: true, not: strings.HasPrefix(name, "!")}
		}
		all = append(all, r)
	}
	return all
}

// matches is false of nil: there is nothing to show.
func (s selector) matches(d doc) bool {
	if d == nil {
		return false
	}
	labels, _ := d.meta()["labels"].(map[string]any)
	for _, r := range s.labels {
		value, has := labels[r.name]
		ok := has
		if !r.exists {
			ok = has && value == r.value
		}
		if ok == r.not {
			return false
		}
	}
	for _, r := range s.fields {
		if (d.field(r.name) == r.value) == r.not {
			return false
		}
	}
	return true
}
