package cli

import (
	"strings"
	"testing"
)

func setsDoor(t *testing.T) *door {
	t.Helper()
	const item = `{"name":"reading","origin":"api","etag":"\"7\"","by":"ann","definition":{"description":"Read only.","include":[{"server":"files"}]}`
	return openDoor(t, map[string]answer{
		"GET /sets":            jsonAnswer(`{"sets":[` + item + `},{"name":"fixed","origin":"configuration","definition":{"include":[{}]}}]}`),
		"GET /sets/reading":    jsonAnswer(item + `,"tools":[{"name":"read","server":"files","tool":"read","enabled":true},{"name":"list","server":"files","tool":"list","enabled":false,"reason":"slow"}],"left_out":[{"name":"x","tools":[{"server":"a","tool":"x"},{"server":"b","tool":"x"}]}]}`),
		"GET /sets/first":      problemAnswer(404, `{"status":404,"detail":"There is no set \"first\"."}`),
		"PUT /sets/first":      jsonAnswer(`{"name":"first"}`),
		"GET /sets/new":        problemAnswer(404, `{"status":404,"detail":"There is no set \"new\"."}`),
		"PUT /sets/reading":    jsonAnswer(item + `}`),
		"PUT /sets/new":        problemAnswer(412, `{"status":412,"detail":"Set \"new\" has changed: the ETag in the request is not its current one. Nothing was changed."}`),
		"DELETE /sets/reading": jsonAnswer(`{"status":"removed"}`),
		"PATCH /tools":         jsonAnswer(`{"server":"files","tool":"*","wide":true,"enabled":false,"tools":3,"at":"2026-11-21T13:17:04Z"}`),
	})
}

// TestSetListShowsTenantsIfSeveral lists a tenant's own set, which cannot be used at
// the moment, together with a set of the configuration.
func TestSetListShowsTenantsIfSeveral(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"GET /sets":         jsonAnswer(`{"sets":[{"name":"mine","tenant":"red","origin":"api","etag":"\"7\"","definition":{"include":[{}]}},{"name":"all","tenant":"default","origin":"configuration","definition":{"include":[{}]}}]}`),
		"GET /sets/mine":    problemAnswer(409, `{"status":409,"detail":"Set \"mine\" cannot be used."}`),
		"DELETE /sets/mine": jsonAnswer(`{"status":"removed"}`),
	})
	for args, want := range map[string]string{"sets": "TENANT red default", "sets remove mine": "was removed"} {
		stdout, stderr, code := typed(t, "", append(strings.Fields(args), "--url", d.URL)...)
		for word := range strings.FieldsSeq(want) {
			if code != exitOK || !strings.Contains(stdout, word) {
				t.Errorf("%s: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
			}
		}
	}
}

func TestSetsAreListedShownAndChanged(t *testing.T) {
	plainEnvironment(t)
	d := setsDoor(t)
	for _, c := range []struct {
		args []string
		code int
		out  []string
		err  string
	}{
		{[]string{"sets"}, exitOK, []string{"reading", "api", "ann", "Read only.", "fixed", "configuration"}, ""},
		{[]string{"sets", "show", "reading"}, exitOK, []string{"read", "off slow"}, "would all be named x"},
		{[]string{"sets", "show", "new"}, exitRefused, nil, `no set "new"`},
		{[]string{"sets", "put", "reading", "--tools", "files/read_*", "--prefix", ""}, exitOK, []string{"2 tools now", "/mcp/@reading"}, ""},
		{[]string{"sets", "put", "new", "--tools", "files/*"}, exitRefused, nil, "Nothing was changed"},
		{[]string{"sets", "put", "new", "--tools", "files"}, exitUsage, nil, "'files/*'"},
		{[]string{"sets", "put", "new", "--tools", ""}, exitUsage, nil, "'files/*'"},
		{[]string{"sets", "put", "new", "--tools", "/"}, exitUsage, nil, "'files/*'"},
		{[]string{"sets", "put", "new", "--tools", "files/"}, exitUsage, nil, "'files/*'"},
		{[]string{"sets", "put", "new", "--tools", "files/a", "--exclude", "/a"}, exitUsage, nil, "'files/*'"},
		{[]string{"sets", "put", "new"}, exitUsage, nil, "--tools"},
		{[]string{"sets", "put", "new", "set.json", "--tools", "a/b"}, exitUsage, nil, "either a file or --tools"},
		{[]string{"sets", "put", "new", "set.json", "--exclude", "a/b"}, exitUsage, nil, "--exclude is not used with a file"},
		{[]string{"sets", "put", "new", "set.json", "--prefix", ""}, exitUsage, nil, "--prefix is not used with a file"},
		{[]string{"sets", "remove", "reading"}, exitOK, []string{"was removed"}, ""},
		{[]string{"tools", "disable", "--match", "files/*", "--reason", "closed"}, exitOK, []string{"3 tools that match now are disabled"}, ""},
		{[]string{"tools", "enable", "--set", "reading"}, exitOK, []string{"enabled, unless something else disables them"}, ""},
		{[]string{"tools", "disable", "--match", "files"}, exitUsage, nil, "'files/*'"},
		{[]string{"tools", "disable", "files"}, exitUsage, nil, "SERVER and TOOL"},
		{[]string{"tools", "disable", "files", "read", "--set", "x"}, exitUsage, nil, "either SERVER and TOOL"},
	} {
		stdout, stderr, code := typed(t, "", append(c.args, "--url", d.URL)...)
		if code != c.code || !strings.Contains(stderr, c.err) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		for _, want := range c.out {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q: %q has no %q", c.args, stdout, want)
			}
		}
	}
}

// TestSetsPutPrintsOneDocument creates a set: that it does not exist is no part of the output.
func TestSetsPutPrintsOneDocument(t *testing.T) {
	plainEnvironment(t)
	out, note, code := typed(t, "", "sets", "put", "first", "--tools", "files/*", "--json", "--url", setsDoor(t).URL)
	if code != exitOK || out != `{"name":"first"}`+"\n" {
		t.Errorf("%d %q %q", code, out, note)
	}
}
