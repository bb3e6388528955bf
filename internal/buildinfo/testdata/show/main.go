// Command show prints its own build.
package main

import (
	"fmt"

	"github.com/callyard/callyard/internal/buildinfo"
)

func main() { fmt.Println(buildinfo.Read()) }
