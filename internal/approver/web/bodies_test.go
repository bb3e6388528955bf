package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/pkg/schema"
)

func TestBodyIsReadOrRefusedWithItsFault(t *testing.T) {
	b := &bodyReader{bodies.New(1000, 0)}
	for _, c := range []struct {
		name, body string
		length     int64
		most       int
		want       schema.Kind // "" means success
	}{
		{"whole", "abc", 3, 10, ""}, {"of unknown length", "abc", -1, 10, ""}, {"longer than it may be", "abcd", 4, 3, schema.KindTooLarge}, {"longer than it said", strings.Repeat("x", 20), -1, 10, schema.KindTooLarge},
		{"shorter than it said", "abc", 9, 10, schema.KindInvalidRequest}, {"without room", strings.Repeat("x", 2000), 2000, 5000, schema.KindUnavailable},
	} {
		reservation := new(bodies.Reservation)
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), reservationKey{}, reservation), http.MethodPost, "/", strings.NewReader(c.body))
		r.ContentLength = c.length
		got, err := b.read(httptest.NewRecorder(), r, c.most, "over %d bytes", c.most)
		switch {
		case c.want == "" && (err != nil || string(got) != c.body):
			t.Errorf("%s: %q, %v", c.name, got, err)
		case c.want != "" && schema.KindOf(err) != c.want:
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		reservation.Release()
		if small, _ := b.budget.Left(); small != 1000 {
			t.Errorf("%s: %d bytes are left", c.name, small)
		}
	}
	if _, err := b.read(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("x")), 9, "over %d bytes", 9); schema.KindOf(err) != schema.KindInternal {
		t.Errorf("a body without a reservation: %v", err)
	}
}
