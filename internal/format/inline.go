package format

import (
	"slices"
	"strconv"
)

// inliner replaces references with their targets, for providers that do not support references.
type inliner struct {
	root  *value
	notes *notes
	space int      // remaining budget of values
	stack []string // references that are being inlined
	deep  bool     // a reference was recursive, or the budget ran out
}

// inlineBudget limits the size, in values, to which inlining can grow a schema.
const inlineBudget = 5_000

// open returns the schema with the references at its top inlined. The caller must call the returned
// function after it has processed the subschemas.
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

// joined merges the branches of allOf into the schema.
func (in *inliner) joined(s *value, at string) *value {
	s = s.clone()
	all := s.drop("allOf")
	for i, branch := range all.items {
		here := at + "/allOf/" + strconv.Itoa(i)
		branch, done := in.open(branch, here)
		if branch.isObject() {
			if branch.get("allOf").isList() {
				branch = in.joined(branch, here)
			}
			merge(s, branch.clone(), here, in.notes)
		}
		done()
	}
	return s
}
