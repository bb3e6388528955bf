package openapi

import (
	"context"
	"net/http"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// noToken is an authorizer whose authorization server is down.
type noToken struct{}

func (noToken) Authorize(context.Context, http.Header) error {
	return launch.Failed("There is no access token. The call did not start.")
}

func (noToken) Refused(context.Context, launch.Refusal) (bool, error) { return false, nil }

// It is not an answer of the service: another worker may have a token, and the caller may send the call
// again.
func TestACallWithoutACredentialIsNotAnswered(t *testing.T) {
	srv := newService(t)
	s := open(t, Config{ID: "pets", OpenAPI: config.OpenAPI{Document: "testdata/petstore.yaml", BaseURL: srv.URL + "/v1", Credentials: secrets()}, Auth: noToken{}, AuthHeader: "Authorization"})
	offer, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body, err := s.Call(t.Context(), offer.Tools[0].Name, []byte(`{"id":1,"petId":1}`))
	if schema.KindOf(err) != schema.KindServerFailed || srv.count() != 0 {
		t.Errorf("%s: it ended with %s, %v; the service was asked %d times", offer.Tools[0].Name, body, err, srv.count())
	}
}
