//go:build tools

// Package tools pins what `npm run conformance:http2` builds.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
