# What one does with a checkout. Everything needs Go alone; the rest is fetched.

GO       ?= go
FUZZTIME ?= 5s
LINT     := $(GO) tool -modfile=tools/go.mod golangci-lint

.PHONY: run build generate screenshots test lint fmt fuzz explore bench clean

run: ## serve locks on http://localhost:8080
	$(GO) run ./cmd/caddy run --config Caddyfile.example

build: ## build bin/caddy, of what xcaddy.json lists
	$(GO) -C tools run ./xbuild -output ../bin/caddy

generate: ## render the documentation into the page that is served
	$(GO) generate ./internal/page

# The pictures in bin/screenshots are for looking at. Debian's fonts-sil-charis,
# fonts-inter and fonts-jetbrains-mono make them look as on most desktops.
screenshots: ## take pictures of the page with Chromium, and README.md's among them
	mkdir -p bin/screenshots
	$(GO) -C integration test -count=1 -run '^TestScreenshots$$' ./browser -args -screenshots=$(CURDIR)/bin/screenshots
	cp bin/screenshots/light.png docs/page.png

test: ## run every test
	$(GO) test -race -timeout 20m ./...
	$(GO) test -timeout 10m -run '^TestExplore' ./backends/replicated # one goroutine each: no race to see
	$(GO) -C tools test -timeout 30m ./...
	$(GO) -C integration test -race -parallel 8 -count=1 -timeout 30m ./... # they build what they run, which the cache does not see

lint: ## vet and lint every module
	$(GO) vet ./...
	$(GO) -C bench vet ./...
	$(GO) -C tools vet ./...
	$(GO) -C integration vet ./...
	$(LINT) run ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...
	cd tools && $(GO) tool golangci-lint run --config ../.golangci.yml ./...
	cd integration && $(GO) tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...

fmt: ## format Go code and the example
	$(LINT) fmt
	$(GO) run ./cmd/caddy fmt --overwrite Caddyfile.example

fuzz: ## fuzz each target for FUZZTIME
	$(GO) test -run '^$$' -fuzz '^FuzzRequest$$' -fuzztime $(FUZZTIME) ./internal/lockhttp
	$(GO) test -run '^$$' -fuzz '^FuzzQuery$$' -fuzztime $(FUZZTIME) ./internal/lockhttp
	$(GO) test -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./backends/replicated

explore: ## every interleaving of the replicated engine in small worlds; hours
	$(GO) test -timeout 24h -v -run '^TestExplore' ./backends/replicated -args -explore.long

bench: ## measure the engines, and HTTP against Caddy's own respond; twenty minutes
	$(GO) test -run '^$$' -bench . -benchmem ./backends/memory
	$(GO) -C bench run . http
	$(GO) -C bench run . waiters
	$(GO) -C bench run . etcd
	$(GO) -C bench run . nats
	$(GO) -C bench run . backends

clean:
	rm -rf bin
