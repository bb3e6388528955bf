package housetest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// violation is a place that breaks a rule.
type violation struct {
	where  string // file:line, or a directory
	what   string
	reason string
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s\n\twhy: %s", v.where, v.what, v.reason)
}

const (
	whyArrows    = "imports go down only: schema ← risk, bus ← support ← domain ← roles ← set-up and command line ← cmd; a lower layer must build, be tested and be understood without the higher ones (rule 1)"
	whyNouns     = "pkg/schema imports the standard library only, so that every package can depend on it (section 2)"
	whyPublic    = "pkg is for other modules, which cannot import internal packages (rule 2)"
	whyRoles     = "roles are separate processes with separate privileges; move shared code into the domain (rule 2)"
	whyRoleParts = "only the role itself may import its subpackages (rule 2)"
	whyPlace     = "every package belongs to a layer; add it to the layers of internal/housetest (section 2)"
	whyOwner     = "only the listed owners may import this library (rule 3): "
	whyOneHome   = "an external library may be imported by one package only: use it through the first importer, or add a row with the owners and the reason to the libraries of internal/housetest (rule 3)"
	whySubjects  = "subjects, streams, buckets and headers are named in pkg/bus only, so that NATS permissions can be derived from one file (rule 4)"
	whyOneEntry  = "endpoints must use internal/calls, the only entry for calls, so that they do not depend on the store that holds a call (section 4)"
	whyStores    = "only internal/calls may know the store that holds a call; if the package must know it too, add it to knowCallStores of internal/housetest with the reason (section 4)"
	whyResources = "a resource of the REST API must not import another one, only shared packages and the domain, so that each can be read and changed alone (section 2)"
	whyComment   = "every package needs a comment that states its responsibilities, guarantees and limits (rule 7)"
	whyLines     = "a file has at most 800 lines; split it by topic (section 3)"
	whyMethods   = "a type has at most 40 methods; split it into several types (section 3)"
	whyPackage   = "split a package of more than 2,500 lines, or give the reason in its comment in a sentence that begins with \"" + onePackage + "\" (section 3)"
	whyVariants  = "the tested code must be the shipped code: build constraints may select the operating system or processor only (section 3)"
	whyTesting   = "the testing package registers flags and enlarges every binary; only packages whose names end in test may import it"
)

const (
	maxLines        = 800
	maxMethods      = 40
	maxPackageLines = 2500

	onePackage = "It is one package because"
)

// treeCheck is the state of a check of the whole tree.
type treeCheck struct {
	module string
	units  []*unit
	found  []violation
}

// check returns every violation in the tree, ordered by rule and then by place.
func check(module string, units []*unit) []violation {
	h := treeCheck{module: module, units: units}
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

func (h *treeCheck) report(where, reason, format string, args ...any) {
	h.found = append(h.found, violation{where, fmt.Sprintf(format, args...), reason})
}

func at(f file, r reference) string { return fmt.Sprintf("%s:%d", f.path, r.line) }

// own returns the directory of an imported package of this module.
func (h *treeCheck) own(imported string) (string, bool) {
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

// arrows checks rules 1 and 2.
func (h *treeCheck) arrows(u *unit) {
	from, ok := placed(u.dir)
	if !ok {
		h.report(u.dir, whyPlace, "the package belongs to no layer")
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
			case ours && isWithin(dir, callStores) && !mayImportCallStores(f.path) && !isWithin(u.dir, callStores):
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

// mayImportCallStores reports whether a file may import the stores of calls.
func mayImportCallStores(file string) bool {
	return slices.ContainsFunc(knowCallStores, func(k struct{ root, reason string }) bool { return within(file, k.root) })
}

func isWithin(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(dir, root) })
}

// isResource reports whether a directory is a resource of the REST API.
func isResource(dir string) bool {
	return strings.HasPrefix(dir, restAPI+"/") && !isWithin(dir, restShared)
}

func (h *treeCheck) arrow(u *unit, from layer, dir, where string) {
	to, ok := placed(dir)
	if !ok {
		return // reported for the package itself
	}
	switch {
	case to.rank == role && dir != to.root && to.root != from.root:
		h.report(where, whyRoleParts, "%s imports %s, a subpackage of the role %s", u.dir, dir, to.root)
	case to.rank > from.rank:
		h.report(where, whyArrows, "%s (%s) imports %s (%s)", u.dir, from.rank, dir, to.rank)
	case to.rank < from.rank, to.root == from.root, mixed[from.rank]:
	case from.rank == role:
		h.report(where, whyRoles, "role %s imports role %s", u.dir, dir)
	default:
		h.report(where, whyArrows, "%s imports %s, which is in the same layer", u.dir, dir)
	}
}

// outside reports whether an import path is neither in the standard library nor "C".
func outside(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

// owners checks rule 3 for the libraries with a row.
func (h *treeCheck) owners(u *unit) {
	if u.testOnly() {
		return
	}
	for _, f := range u.files {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			if row := rowFor(imp.what); row != nil && !row.ownedBy(u.dir) {
				h.report(at(f, imp), whyOwner+row.reason, "%s imports %s, which only these packages may import: %s", u.dir, imp.what, strings.Join(row.owners, ", "))
			}
		}
		for _, sel := range f.selected {
			for _, row := range libraries {
				if name, ok := strings.CutPrefix(sel.what, row.root+"."); ok && slices.Contains(row.names, name) && !row.ownedBy(u.dir) {
					h.report(at(f, sel), whyOwner+row.reason, "%s uses %s, which only these packages may use: %s", u.dir, sel.what, strings.Join(row.owners, ", "))
				}
			}
		}
	}
}

// ownedBy reports whether a package may use the library. All may use a row without owners.
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

// homes checks rule 3 for the libraries without a row.
func (h *treeCheck) homes() {
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

// root returns the library of an import path, guessed from the path.
func root(imported string) string {
	parts := strings.Split(imported, "/")
	n := 2
	switch parts[0] {
	case "github.com", "gitlab.com", "codeberg.org", "bitbucket.org":
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// subjects checks rule 4.
func (h *treeCheck) subjects(u *unit) {
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

// named reports whether text looks like a name in NATS. File names such as callyard.yaml do not count.
// Neither do names of metrics, which start with callyard_, in internal/telemetry.
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
		return !within(dir, "internal/telemetry") // span attributes
	case strings.HasPrefix(text, "callyard_"):
		return !within(dir, "internal/telemetry")
	}
	return false
}

// shape checks the rest of rule 7: package comments and file sizes.
func (h *treeCheck) shape(u *unit) {
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

// testing fails on direct and indirect imports of the testing package in shipped code.
func (h *treeCheck) testing(u *unit) {
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

func (h *treeCheck) usesTesting(dir string) bool {
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
