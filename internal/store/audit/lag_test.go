package audit

import (
	"strconv"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// A replica that was frozen or has just started lacks the last messages. The record must not look as if
// somebody had removed them.
func TestTheRecordIsReadPastAReplicaThatLags(t *testing.T) {
	s := bustest.Start(t)
	l := open(t, s.Connect(t, "test"), Options{})
	began := time.Now().Add(-time.Second)
	for i := range 3 {
		add(t, l, Entry{Kind: "test", By: strconv.Itoa(i)})
	}
	l.Close() // the head is that of the last record
	s.Lag(t, "callyard_audit")
	report, err := l.Verify(t.Context())
	if err != nil || !report.OK() || report.Records != 3 {
		t.Errorf("%+v, %v", report, err)
	}
	if v, err := NewVerifier(l.Reader).Verify(t.Context(), time.Minute); err != nil || !v.OK() || !v.Complete || v.Records != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	for name, read := range map[string]func() int{
		"Read": func() int { all, _, _ := l.Read(t.Context(), schema.AllTenants(), Filter{}, ""); return len(all) },
		"Newest": func() int {
			all, _, _ := l.Newest(t.Context(), schema.AllTenants(), Filter{Since: began}, "")
			return len(all)
		},
		"Since": func() (n int) {
			_ = l.Since(t.Context(), schema.AllTenants(), began, func(*Record) bool { n++; return true })
			return n
		},
	} {
		if n := read(); n != 3 {
			t.Errorf("%s returns %d records, not 3", name, n)
		}
	}
}
