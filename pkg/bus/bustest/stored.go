package bustest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamsWith returns the names of the streams of the server at the URL that have a message with the
// text in its data or in a header, including headers in base64.
func StreamsWith(t testing.TB, url, text string) (names []string) {
	t.Helper()
	js := JetStream(t, url)
	list := js.ListStreams(t.Context())
	for info := range list.Info() {
		if streamHas(t, js, info, text) {
			names = append(names, info.Config.Name)
		}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func streamHas(t testing.TB, js jetstream.JetStream, info *jetstream.StreamInfo, text string) bool {
	t.Helper()
	s, err := js.Stream(t.Context(), info.Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	for sequence := info.State.FirstSeq; sequence <= info.State.LastSeq && sequence > 0; sequence++ {
		m, err := s.GetMsg(t.Context(), sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it was deleted or replaced
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(m.Data, []byte(text)) {
			return true
		}
		for _, values := range m.Header {
			for _, v := range values {
				decoded, _ := base64.RawStdEncoding.DecodeString(v)
				if bytes.Contains([]byte(v), []byte(text)) || bytes.Contains(decoded, []byte(text)) {
					return true
				}
			}
		}
	}
	return false
}
