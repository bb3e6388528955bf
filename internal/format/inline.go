package format

import "slices"

// inliner puts what references point to in their place, for providers that know
// none.
type inliner struct {
	root  *value
	notes *notes
	space int      // values that may still be made
	stack []string // references that are being put in
	deep  bool     // a reference led back to itself, or there was no room
}

// inlineBudget bounds what references can blow a schema up to.
const inlineBudget = 5_000

// open returns the schema without a reference at its top, and what is to be called
// when its insides are done.
func (in *inliner) open(s *value, at string) (*value, func()) {
	var opened []string
	done := func() { in.stack = in.stack[:len(in.stack)-len(opened)] }
	for s.isObject() && s.get("$ref").isString() {
		ref := s.get("$ref").text()
		target := lookup(in.root, ref)
		s = s.clone()
		s.drop("$ref")
		if target == nil {
			in.notes.add(at, "the contents of a referenced schema")
			break
		}
		if slices.Contains(in.stack, ref) || in.space <= 0 {
			in.deep = true
			in.notes.add(at, "further recursion, which is not shown again")
			if t := types(target); len(t) == 1 && s.get("type") == nil {
				s.set("type", str(t[0]))
			}
			break
		}
		in.stack = append(in.stack, ref)
		opened = append(opened, ref)
		if target.isObject() {
			merge(s, target.clone(), at, in.notes)
			s.drop("$defs")
			s.drop("definitions")
		} else if target.kind == 'f' {
			return target, done
		}
	}
	if s.isObject() {
		in.space -= len(s.members) + 1
	}
	return s, done
}
