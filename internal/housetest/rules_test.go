package housetest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// violation is one place that breaks a rule.
type violation struct {
	where  string // file:line, or a directory
	what   string
	reason string
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s\n\twhy: %s", v.where, v.what, v.reason)
}

const (
	whyArrows    = "arrows go down only: schema ← risk, bus ← support ← domain ← roles ← set-up and command line ← cmd; what stands lower must build, be tested and be understood without what stands higher (rule 1)"
	whyNouns     = "pkg/schema imports the standard library only, so that anybody can depend on the nouns (section 2)"
	whyPublic    = "pkg is for others to import, and they cannot import internal (rule 2)"
	whyRoles     = "roles are separate processes, split by what they may touch; what they share goes into the domain (rule 2)"
	whyRoleParts = "the subpackages of a role are that role's own (rule 2)"
	whyPlace     = "every package has its place; enter it in the layers of internal/housetest, beside its reason (section 2)"
	whyOwner     = "each outside library has one owner (rule 3): "
	whyOneHome   = "a second importer of a library is a decision: move the use into the first, or enter the owners and the reason in the libraries of internal/housetest (rule 3)"
	whySubjects  = "subjects, streams, buckets and headers are named in pkg/bus only, so that NATS permissions can be read off one file (rule 4)"
	whyOneEntry  = "a call has one entry: endpoints use internal/calls, so that none of them knows which store holds a call (section 4)"
	whyStores    = "which store holds a call is known to internal/calls; enter the package in knowCallStores of internal/housetest, with the reason, where it must know too (section 4)"
	whyResources = "a resource of the REST API imports what all of them share, and the domain, so that each can be read and changed alone (section 2)"
	whyComment   = "the package comment says what a package owns, promises and refuses (rule 7)"
	whyLines     = "a file of more than 800 lines is more than one thing (section 3)"
	whyMethods   = "a type with more than 40 methods is several things; each of them is a type of its own (section 3)"
	whyPackage   = "a package of more than 2,500 lines says in its comment why: a sentence that begins with \"" + onePackage + "\" (section 3)"
	whyVariants  = "what is tested is what is shipped: a build constraint tells machines apart, and switches nothing else (section 3)"
	whyTesting   = "testing registers flags and pulls its weight into every binary; only packages for tests, whose names end in test, may import it"
)

const (
	maxLines        = 800
	maxMethods      = 40
	maxPackageLines = 2500

	onePackage = "It is one package because"
)

// house is the tree and what is known about all of it.
type house struct {
	module string
	units  []*unit
	found  []violation
}

// check returns every violation in the tree, ordered by rule, then by place.
func check(module string, units []*unit) []violation {
	h := house{module: module, units: units}
	for _, u := range units {
		h.arrows(u)
	}
	for _, u := range units {
		h.owners(u)
	}
	h.homes()
	for _, u := range units {
		h.subjects(u)
		h.shape(u)
		h.sizes(u)
		h.variants(u)
		h.testing(u)
	}
	return h.found
}

func (h *house) report(where, reason, format string, args ...any) {
	h.found = append(h.found, violation{where, fmt.Sprintf(format, args...), reason})
}

func at(f file, r reference) string { return fmt.Sprintf("%s:%d", f.path, r.line) }

// own returns the directory of an import of this module.
func (h *house) own(imported string) (string, bool) {
	if imported == h.module {
		return ".", true
	}
	return strings.CutPrefix(imported, h.module+"/")
}

// placed returns the layer of a directory.
func placed(dir string) (layer, bool) {
	var best layer
	for _, l := range layers {
		if within(dir, l.root) && len(l.root) > len(best.root) {
			best = l
		}
	}
	return best, best.root != ""
}

// arrows is rules 1 and 2.
func (h *house) arrows(u *unit) {
	from, ok := placed(u.dir)
	if !ok {
		h.report(u.dir, whyPlace, "the package has no place in the house")
		return
	}
	for _, f := range u.files {
		for _, imp := range f.imports {
			dir, ours := h.own(imp.what)
			switch {
			case ours && within(u.dir, "pkg") && !within(u.dir, publicWorker) && within(dir, "internal"):
				h.report(at(f, imp), whyPublic, "%s imports %s", u.dir, dir)
			case f.test || u.testOnly():
			case ours && isWithin(u.dir, endpoints) && isWithin(dir, behindCalls):
				h.report(at(f, imp), whyOneEntry, "%s imports %s", u.dir, dir)
			case ours && isWithin(dir, callStores) && !knowsCallStores(f.path) && !isWithin(u.dir, callStores):
				h.report(at(f, imp), whyStores, "%s imports %s", f.path, dir)
			case ours && isResource(u.dir) && isResource(dir) && dir != u.dir:
				h.report(at(f, imp), whyResources, "%s imports %s", u.dir, dir)
			case ours:
				h.arrow(u, from, dir, at(f, imp))
			case from.rank == nouns && outside(imp.what):
				h.report(at(f, imp), whyNouns, "%s imports %s", u.dir, imp.what)
			}
		}
	}
}

// knowsCallStores reports whether a file may name the stores of calls.
func knowsCallStores(file string) bool {
	return slices.ContainsFunc(knowCallStores, func(k struct{ root, reason string }) bool { return within(file, k.root) })
}

func isWithin(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(dir, root) })
}

// isResource reports whether a directory is a resource of the REST API.
func isResource(dir string) bool {
	return strings.HasPrefix(dir, restAPI+"/") && !isWithin(dir, restShared)
}

func (h *house) arrow(u *unit, from layer, dir, where string) {
	to, ok := placed(dir)
	if !ok {
		return // reported where it stands
	}
	switch {
	case to.rank == role && dir != to.root && to.root != from.root:
		h.report(where, whyRoleParts, "%s imports %s, a part of %s", u.dir, dir, to.root)
	case to.rank > from.rank:
		h.report(where, whyArrows, "%s (%s) imports %s (%s)", u.dir, from.rank, dir, to.rank)
	case to.rank < from.rank, to.root == from.root, mixed[from.rank]:
	case from.rank == role:
		h.report(where, whyRoles, "role %s imports role %s", u.dir, dir)
	default:
		h.report(where, whyArrows, "%s imports %s, which stands beside it", u.dir, dir)
	}
}

// outside says that an import path is neither of the standard library nor "C".
func outside(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

// owners is rule 3 for the libraries with a row.
func (h *house) owners(u *unit) {
	if u.testOnly() {
		return
	}
	for _, f := range u.files {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			if row := rowFor(imp.what); row != nil && !row.ownedBy(u.dir) {
				h.report(at(f, imp), whyOwner+row.reason, "%s imports %s, which is for %s", u.dir, imp.what, strings.Join(row.owners, ", "))
			}
		}
		for _, sel := range f.selected {
			for _, row := range libraries {
				if name, ok := strings.CutPrefix(sel.what, row.root+"."); ok && slices.Contains(row.names, name) && !row.ownedBy(u.dir) {
					h.report(at(f, sel), whyOwner+row.reason, "%s uses %s, which is for %s", u.dir, sel.what, strings.Join(row.owners, ", "))
				}
			}
		}
	}
}

// ownedBy says that a package may use the library; a row without owners is for all.
func (l library) ownedBy(dir string) bool {
	return len(l.owners) == 0 || slices.ContainsFunc(l.owners, func(owner string) bool { return within(dir, owner) })
}

func rowFor(imported string) *library {
	var best *library
	for i := range libraries {
		row := &libraries[i]
		if row.names == nil && (imported == row.root || strings.HasPrefix(imported, row.root+"/")) && (best == nil || len(row.root) > len(best.root)) {
			best = row
		}
	}
	return best
}

// homes is rule 3 for the libraries without a row.
func (h *house) homes() {
	first := map[string]string{} // library → the first package that imports it
	for _, u := range h.units {
		if l, ok := placed(u.dir); u.testOnly() || !ok || l.rank == command && l.root != "cmd" {
			continue
		}
		for _, f := range u.files {
			for _, imp := range f.imports {
				if _, ours := h.own(imp.what); f.test || ours || !outside(imp.what) || rowFor(imp.what) != nil {
					continue
				}
				lib := root(imp.what)
				if home, seen := first[lib]; !seen {
					first[lib] = u.dir
				} else if home != u.dir {
					h.report(at(f, imp), whyOneHome, "%s imports %s, and so does %s", u.dir, lib, home)
				}
			}
		}
	}
}

// root returns the library that an import path belongs to, as far as a path tells.
func root(imported string) string {
	parts := strings.Split(imported, "/")
	n := 2
	switch parts[0] {
	case "github.com", "gitlab.com", "codeberg.org", "bitbucket.org":
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// subjects is rule 4.
func (h *house) subjects(u *unit) {
	if within(u.dir, "pkg/bus") || within(u.dir, "internal/housetest") || u.testOnly() {
		return
	}
	for _, f := range u.files {
		if f.test {
			continue
		}
		for _, lit := range f.literals {
			if named(lit.what, u.dir) {
				h.report(at(f, lit), whySubjects, "%s names %q", u.dir, lit.what)
			}
		}
	}
}

// named says that text reads like a name in NATS. Files are called callyard.yaml
// and the like, and metrics begin with callyard_.
func named(text, dir string) bool {
	if strings.ContainsAny(text, " /\n") {
		return false
	}
	for _, prefix := range []string{"cy.", "_INBOX", "$KV", "$JS", "$SYS", "Nats-"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	switch {
	case strings.HasPrefix(text, "callyard."):
		switch path.Ext(text) {
		case ".yaml", ".yml", ".json", ".toml", ".env", ".log", ".pid", ".sock", ".lock", ".db":
			return false
		}
		return !within(dir, "internal/telemetry") // what is noted of spans
	case strings.HasPrefix(text, "callyard_"):
		return !within(dir, "internal/telemetry")
	}
	return false
}

// shape is the rest of rule 7: comments and sizes.
func (h *house) shape(u *unit) {
	var comment string
	for _, f := range u.files {
		if f.comment != "" && (!f.test || u.testOnly()) {
			comment = f.comment
		}
		if f.lines > maxLines {
			h.report(f.path, whyLines, "the file has %d lines", f.lines)
		}
	}
	switch {
	case comment == "":
		h.report(u.dir, whyComment, "package %s has no package comment", u.name)
	case u.name != "main" && !strings.HasPrefix(comment, "Package "+u.name):
		h.report(u.dir, whyComment, "the package comment does not begin with %q", "Package "+u.name)
	}
}

// testing keeps the testing package out of what we ship, by whatever way.
func (h *house) testing(u *unit) {
	if u.testOnly() {
		return
	}
	for _, f := range u.files {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			if imp.what == "testing" || strings.HasPrefix(imp.what, "testing/") {
				h.report(at(f, imp), whyTesting, "%s imports %s", u.dir, imp.what)
			}
			if dir, ours := h.own(imp.what); ours && h.usesTesting(dir) {
				h.report(at(f, imp), whyTesting, "%s imports %s, which imports testing", u.dir, dir)
			}
		}
	}
}

func (h *house) usesTesting(dir string) bool {
	for _, u := range h.units {
		if u.dir != dir {
			continue
		}
		for _, f := range u.files {
			for _, imp := range f.imports {
				if !f.test && (imp.what == "testing" || strings.HasPrefix(imp.what, "testing/")) {
					return true
				}
			}
		}
	}
	return false
}
