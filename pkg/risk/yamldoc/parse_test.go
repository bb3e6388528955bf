package yamldoc

import (
	"fmt"
	"strings"
	"testing"
)

// read returns the results of Parse and the faults with their positions.
func read(source string, references bool) (root *Node, faults []string) {
	root, _ = Parse([]byte(source), Options{MaxDepth: 10, References: references, Report: func(at Position, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%d:%d: %s", at.Line, at.Column, fmt.Sprintf(format, args...)))
	}})
	return root, faults
}

func TestValuesHaveTheirPositions(t *testing.T) {
	root, faults := read("list:\n  - 7\n  - \"two\"\nnothing:\n", false)
	if len(faults) > 0 || root.Kind != Map || len(root.Members) != 2 {
		t.Fatalf("%+v, %q", root, faults)
	}
	items := root.Members[0].Value.Items
	for _, c := range []struct {
		n    *Node
		kind Kind
		at   Position
		text string
	}{{items[0], Number, Position{2, 5}, "7"}, {items[1], Text, Position{3, 5}, "two"}} {
		if c.n.Kind != c.kind || c.n.At != c.at || c.n.Text != c.text {
			t.Errorf("%+v, want %s at %v: %q", c.n, c.kind, c.at, c.text)
		}
	}
	if nothing := root.Members[1]; nothing.Value.Kind != Null || nothing.At != (Position{4, 1}) {
		t.Errorf("%+v", nothing)
	}
	if items[1].Indent != 1 {
		t.Errorf("the text stands %d characters behind its place, want 1", items[1].Indent)
	}
}

func TestReferencesAreRefusedUnlessAllowed(t *testing.T) {
	const source = "a: &x {k: !!str 1}\nb: *x\n"
	root, faults := read(source, true)
	if len(faults) > 0 || root.Members[0].Value != root.Members[1].Value || root.Members[0].Value.Members[0].Value.Kind != Text {
		t.Errorf("%+v, %q", root, faults)
	}
	if _, faults := read(source, false); len(faults) != 2 || !strings.HasPrefix(faults[0], "1:4: anchors, aliases and tags") {
		t.Errorf("faults %q", faults)
	}
	if _, faults := read("a: *x\nb: !secret\n", true); len(faults) != 2 || strings.Contains(faults[1], "secret") {
		t.Errorf("faults %q", faults)
	}
}

func TestTooDeepNestingIsRefused(t *testing.T) {
	for _, source := range []string{strings.Repeat("[", 11), strings.Repeat("- ", 11) + "x", strings.Repeat(" ", 500) + "a: 1"} {
		root, faults := read(source, false)
		if root != nil || len(faults) != 1 || !strings.Contains(faults[0], "nested more than 10 levels") {
			t.Errorf("%.20q: %+v, %q", source, root, faults)
		}
	}
}

func TestAColonWithoutASpaceBelongsToTheText(t *testing.T) {
	for _, want := range []string{"host:1", "http://host:80/a?b=c", "a:b:c", "12:30", "tools:call:@set", "über:1", "fe80::1", "a::b", "true:1", "x:~"} {
		for _, source := range []string{"%s", "a: %s", "- %s", "[%s]", "{a: [%s]}", "{a: {b: [%s, 2]}}", "a: {b: [x, %s], c: d}", "{a: %s}", "{a: %s, b: 1}", "a: [{b: %s}]"} {
			root, faults := read(fmt.Sprintf(source, want), false)
			if len(faults) > 0 || root == nil {
				t.Errorf("%s: %q", fmt.Sprintf(source, want), faults)
				continue
			}
			found := false
			var find func(n *Node)
			find = func(n *Node) {
				found = found || n.Kind == Text && n.Text == want
				for _, item := range n.Items {
					find(item)
				}
				for _, m := range n.Members {
					find(m.Value)
				}
			}
			if find(root); !found {
				t.Errorf("%s is not read as that text", fmt.Sprintf(source, want))
			}
		}
	}
	// Quoted keys, and maps within maps, are not texts.
	for source, keys := range map[string]int{`{"a":1}`: 1, `{'a':{b: 1}}`: 1, `{a: 1,b: 2}`: 2, `{a: {b: c}}`: 1, "a:\n  b: 1\n": 1, `{a: "b":1}`: 0} {
		root, faults := read(source, false)
		if keys > 0 && (len(faults) > 0 || root.Kind != Map || len(root.Members) != keys) || keys == 0 && len(faults) == 0 {
			t.Errorf("%s: %+v, %q", source, root, faults)
		}
	}
}
