package scope

import (
	"reflect"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func parse(t *testing.T, list ...string) *Set {
	t.Helper()
	s, err := Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestAScopeIncludesNarrowerOnesAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		have []string
		want string
		ok   bool
	}{
		{nil, ReadTools, false}, {[]string{ReadTools}, ReadTools, true}, {[]string{ReadTools}, CallTools, false}, {[]string{CallTools}, ReadTools, false}, {[]string{Admin}, CallTools, false}, {[]string{Admin}, ReadCalls, false},
		{[]string{CallTools}, "tools:call:files", true}, {[]string{CallTools}, "tools:call:@set", true}, {[]string{"tools:call:files"}, "tools:call:files", true}, {[]string{"tools:call:files"}, "tools:call:file", false},
		{[]string{"tools:call:files"}, CallTools, true}, {[]string{"tools:call:@daily"}, CallTools, true}, {[]string{Approve}, Admin, false},
	} {
		if got := parse(t, c.have...).Has(c.want); got != c.ok {
			t.Errorf("%v has %s: %t", c.have, c.want, got)
		}
	}
}

func TestScopesDecideWhichToolMayBeCalled(t *testing.T) {
	member := func(_ schema.TenantID, set string, server schema.ServerID, tool string) bool {
		return set == "daily" && server == "mail" && tool == "read"
	}
	for _, c := range []struct {
		have   []string
		server schema.ServerID
		tool   string
		ok     bool
	}{
		{[]string{CallTools}, "mail", "send", true}, {[]string{"tools:call:mail"}, "mail", "send", true}, {[]string{"tools:call:mail"}, "files", "read", false}, {[]string{"tools:call:mail"}, "mail", "", true},
		{[]string{"tools:call:@daily"}, "mail", "read", true}, {[]string{"tools:call:@daily"}, "mail", "send", false}, {[]string{"tools:call:@daily"}, "mail", "", false}, {[]string{"tools:call:@other"}, "mail", "read", false}, {[]string{Admin, ReadTools, ReadCalls}, "mail", "read", false},
	} {
		if got := parse(t, c.have...).MayCall(c.server, c.tool, member); got != c.ok {
			t.Errorf("%v may call %s of %s: %t", c.have, c.tool, c.server, got)
		}
	}
}

func TestUnknownScopesAreIgnoredAndRefusedInAConfig(t *testing.T) {
	for _, one := range []string{"openid", "tools:write", "tools:call:", "tools:call:@", "tools", "", "Tools:read", "tools:read "} {
		if _, err := Parse([]string{ReadTools, one}); err == nil {
			t.Errorf("%q is taken", one)
		}
		of := Of([]string{one, ReadTools})
		if !of.Has(ReadTools) || of.Has(CallTools) || of.Has(Admin) {
			t.Errorf("%q: %+v", one, of)
		}
	}
}

func TestGrantsCannotExceedOwnScopes(t *testing.T) {
	for _, c := range []struct {
		give, have []string
		ok         bool
	}{
		{nil, nil, true}, {[]string{ReadTools}, []string{Admin}, false}, {[]string{ReadTools}, []string{Admin, ReadTools}, true}, {[]string{"tools:call:a"}, []string{CallTools}, true}, {[]string{CallTools}, []string{"tools:call:a"}, false},
		{[]string{"tools:call:@s"}, []string{CallTools}, true}, {[]string{"tools:call:@s"}, []string{"tools:call:@t"}, false}, {[]string{"tools:call:a", "tools:call:@s"}, []string{"tools:call:a", "tools:call:@s"}, true}, {[]string{"tools:call:b"}, []string{"tools:call:a"}, false},
	} {
		if got := parse(t, c.give...).Within(parse(t, c.have...)); got != c.ok {
			t.Errorf("%v within %v: %t", c.give, c.have, got)
		}
	}
}

// The console hides the form to settle a call from keys that may not list API keys.
func TestSettlingCallsRequiresTheScopesOfListingKeys(t *testing.T) {
	settle, _ := OfOperation("settle-call")
	if list, _ := OfOperation("list-keys"); !reflect.DeepEqual(settle, list) {
		t.Errorf("settling requires %+v, listing keys %+v", settle, list)
	}
}
