package web_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestPageShowsToolChangesSinceLastApproval(t *testing.T) {
	f := open(t, people(), nil)
	const before, after = `{"name":"delete","description":"Deletes one file."}`, `{"name":"delete","description":"Deletes all files."}`
	type change struct {
		Tool struct {
			Is     string
			Digest string                   `json:"last_tool_definition_digest"`
			Before *struct{ Base64 string } `json:"last_tool_definition"`
		} `json:"tool_change"`
	}
	c := f.signedIn("ada")
	look := func(id schema.ApprovalID, want string) (page string, d change) {
		t.Helper()
		decode(t, f.api("ada", "GET", "/approvals/"+string(id), ""), &d)
		if d.Tool.Is != want {
			t.Errorf("it is %q, not %q", d.Tool.Is, want)
		}
		return f.do(c, "GET", "/a/"+string(id), "").body, d
	}
	// A caller that confirms its own call has not looked at the tool.
	mine := f.holdTool(after, `{}`, requester(), func(r *risk.Approval) { r.By, r.Groups = risk.ByCaller, nil })
	if _, err := f.desk.Confirm(t.Context(), mine.Token, true, requester(), "one", "door"); err != nil {
		t.Fatal(err)
	}
	denied := f.holdTool(after, `{}`, requester(), nil).Approval
	if got := f.api("bob", "POST", "/approvals/"+string(denied.ID)+"/decisions", decision("deny", "", "")); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	first := f.holdTool(before, `{}`, requester(), nil).Approval
	if page, _ := look(first.ID, "first"); !strings.Contains(page, "nobody has reviewed its definition yet") {
		t.Error("the page does not say that it is the first")
	}
	if got := f.api("bob", "POST", "/approvals/"+string(first.ID)+"/decisions", decision("approve", first.Binding.ArgumentsDigest, "")); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	f.seen(first.ID, ledger.Approved)
	if page, _ := look(f.holdTool(before, `{}`, requester(), nil).Approval.ID, "unchanged"); strings.Contains(page, `disclosure changed"`) {
		t.Error("the page shows a change where there is none")
	}
	changed := f.holdTool(after, `{}`, requester(), nil).Approval
	page, d := look(changed.ID, "changed")
	for _, part := range []string{
		`The tool definition has changed`, `<del><span class="sign">- </span>  &#34;description&#34;: &#34;Deletes <mark>one file</mark>.&#34;</del>`,
		`<ins><span class="sign">+ </span>  &#34;description&#34;: &#34;Deletes <mark>all files</mark>.&#34;</ins>`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if raw, err := base64.StdEncoding.DecodeString(d.Tool.Before.Base64); err != nil || string(raw) != before || d.Tool.Digest != schema.Digest(raw) {
		t.Errorf("%+v", d)
	}
	if list := f.do(c, "GET", "/", "").body; strings.Count(list, "The tool definition has changed") != 1 {
		t.Error("the list does not mark the one whose tool has changed")
	}
	// A decided approval is compared with the definition before it.
	look(first.ID, "first")
	// Approvals of another server do not count.
	if strings.Contains(f.do(c, "GET", "/review?id="+string(changed.ID), "").body, "has changed</strong>") == false {
		t.Error("a page of several calls does not say it")
	}
}

func TestEditIsComparedWithTheRequest(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"all","n":12345678901234567890}`, requester(), func(r *risk.Approval) { r.Needed = 2 })
	if got := f.api("bob", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("edit", a.Binding.ArgumentsDigest, `,"arguments":{"target":"one","n":12345678901234567890},"reason":"less"`)); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	f.seen(a.ID, ledger.Pending)
	c := f.signedIn("ada")
	for _, path := range []string{"/a/" + string(a.ID), "/history"} {
		page := f.do(c, "GET", path, "").body
		for _, part := range []string{`<mark>all</mark>`, `<mark>one</mark>`, "requested", "bob"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %s", path, part)
			}
		}
	}
}
