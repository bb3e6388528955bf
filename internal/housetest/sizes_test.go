package housetest

import (
	"maps"
	"slices"
	"strings"
)

// shipped reports whether a unit is part of the product.
func (u *unit) shipped() bool {
	return !u.testOnly() && (within(u.dir, "cmd") || within(u.dir, "pkg") || within(u.dir, "internal"))
}

// sizes reports types with too many methods, and large packages without a reason.
func (h *treeCheck) sizes(u *unit) {
	if !u.shipped() {
		return
	}
	lines, reason := 0, false
	methods := map[string]int{}
	for _, f := range u.files {
		if f.test {
			continue
		}
		lines += f.lines
		reason = reason || strings.Contains(f.comment, onePackage)
		for _, m := range f.methods {
			methods[m.what]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n > maxMethods {
			h.report(u.dir, whyMethods, "the type %s has %d methods", name, n)
		}
	}
	if lines > maxPackageLines && !reason {
		h.report(u.dir, whyPackage, "the package has %d lines", lines)
	}
}

// machines are the used build tags that distinguish machines.
var machines = []string{"linux", "unix", "darwin", "amd64", "arm64"}

// variants reports build constraints of product files that depend on anything but the machine.
func (h *treeCheck) variants(u *unit) {
	if !u.shipped() {
		return
	}
	for _, f := range u.files {
		for _, tag := range f.tags {
			if !f.test && !slices.Contains(machines, tag.what) {
				h.report(at(f, tag), whyVariants, "the file depends on the tag %q", tag.what)
			}
		}
	}
}
