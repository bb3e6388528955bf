package web

import (
	"net/http"
	"net/url"
	"testing"
)

func TestFieldsThatAPageFillsInAreNotTheInputOfAPerson(t *testing.T) {
	// The form that settles the call of another caller.
	r := &http.Request{PostForm: url.Values{"token": {"t"}, "id": {"call_1"}, "at": {"2026-11-26T02:00:00Z"}, "do": {"done"}, "reason": {"I looked."}}}
	if all := entered(r); len(all) != 1 || all[0].Name != "reason" || all[0].Value != "I looked." {
		t.Errorf("repeated: %+v", all)
	}
}
