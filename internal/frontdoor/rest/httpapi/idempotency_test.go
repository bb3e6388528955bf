package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestAnIdempotencyKeyIsOneVisibleToken(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
		bad    bool
	}{
		{nil, "", false},
		{[]string{"8e03978e-40d5-43dd-bc93-6894a57f9324"}, "8e03978e-40d5-43dd-bc93-6894a57f9324", false},
		{[]string{`"quoted"`}, "quoted", false},
		{[]string{`""`}, "", true},
		{[]string{""}, "", true},
		{[]string{"a b"}, "", true},
		{[]string{"ключ"}, "", true},
		{[]string{"a", "b"}, "", true},
		{[]string{strings.Repeat("k", 255)}, strings.Repeat("k", 255), false},
		{[]string{strings.Repeat("k", 256)}, "", true},
	} {
		got, err := IdempotencyKey(&http.Request{Header: http.Header{"Idempotency-Key": c.values}})
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%q: %q, %v", c.values, got, err)
		}
	}
}
