// Command show prints the build that it is.
package main

import (
	"fmt"

	"github.com/callyard/callyard/internal/buildinfo"
)

func main() { fmt.Println(buildinfo.Read()) }
