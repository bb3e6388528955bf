package frontdoor

import (
	"fmt"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/webhook"
)

// Check returns the faults in the front door's sections that only a front door can detect.
// The paths start at the root of the file.
func Check(s *settings.File) []config.Fault {
	faults := checkOrigins(s.FrontDoor.Origins)
	if file := s.Webhooks.SecretsFile; file != "" { // `callyard up` has its own
		if _, err := webhook.ReadSecrets(file); err != nil {
			faults = append(faults, config.Faultf("webhooks.secrets_file", "%v.", err))
		}
	}
	faults = append(faults, credential.CheckKeyFiles(s.Credentials.KeyFile, s.Encryption.KeyFile)...)
	return append(faults, confirm.CheckRedis(s.Redis)...)
}

func checkOrigins(origins []string) (faults []config.Fault) {
	for i, text := range origins {
		if _, err := httpguard.Parse(text); err != nil {
			faults = append(faults, config.Faultf(fmt.Sprintf("front_door.origins[%d]", i), "%s.", err))
		}
	}
	return faults
}
