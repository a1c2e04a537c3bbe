# Everything that is built, run and checked here. Needs Go, make, git and coreutils; what needs Python (cfn-lint and
# the SAM CLI, both from pip) says so and is left out where they are missing.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Binaries are static, and the same bytes wherever they are built. Without lambda.norpc, net/rpc and with it half
# of every library would be linked (6 MB more). One set of flags for building, testing and checking: what one has
# compiled, the others find.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false -tags=lambda.norpc
export SAM_CLI_TELEMETRY := 0

# Processor of the Lambda functions. LocalStack wants that of its host: make zip ARCH=amd64
ARCH ?= arm64
LAMBDA := GOOS=linux GOARCH=$(ARCH) go build -ldflags "-s -w"
# Largest zip of a function, in bytes: what a cold start must load. Two functions carry the expression compiler.
ZIP_BYTES = 6000000
zip-DatasetsFunction zip-ProcessFunction: ZIP_BYTES = 9000000

# Folder of each function in functions/, by its logical id in template.yaml.
FUNCTIONS := ApiFunction DatasetsFunction PlanFunction ProcessFunction SweepFunction
ApiFunction := api
DatasetsFunction := datasets
PlanFunction := plan
ProcessFunction := process
SweepFunction := sweep

.PHONY: help
help: ## Print this list
	@while IFS= read -r line; do case "$$line" in [a-z]*:*"## "*) \
	printf '  make %-10s %s\n' "$${line%%:*}" "$${line#*"## "}";; esac; done < Makefile

# --- Build and run --------------------------------------------------------------------------------

.PHONY: build
build: $(FUNCTIONS:%=host-%) ## Build functions, CLI and embedded stack for this machine
	go build -o bin/pintu ./cmd/pintu
	cd localstack && go build -o ../bin/pintu-dev ./cmd/pintu-dev

host-%:
	go build -o build/$*/bootstrap ./functions/$($*)

.PHONY: run
run: build ## Run the whole system here, in the foreground (PORT, and ARGS="--data DIR" to keep its state)
	bin/pintu dev $(ARGS)

.PHONY: demo
demo: build ## Import a real file and a broken one on a stack of its own, and show what comes of them
	@cd localstack && go run ./cmd/demo

.PHONY: bench
bench: build ## Measure speed, memory and cost, each beside the bar it must reach
	@cd localstack && go run ./cmd/bench $(ARGS)

# --- Lambda ---------------------------------------------------------------------------------------

.PHONY: zip
zip: $(FUNCTIONS:%=zip-%) ## Pack the Lambda zips (ARCH=arm64|amd64) and hold them to their size budget

zip-%: tools/bin/lambdazip
	@mkdir -p build/zip
	$(LAMBDA) -o build/lambda/$*/bootstrap ./functions/$($*)
	@tools/bin/lambdazip -max $(ZIP_BYTES) build/lambda/$*/bootstrap build/zip/$*.zip

# sam build calls this for each function.
build-%:
	$(LAMBDA) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$($*)

.PHONY: deploy
deploy: ## Build and deploy to AWS with the SAM CLI (asks before it changes anything)
	sam build
	sam deploy --guided

# --- Checks ---------------------------------------------------------------------------------------

GOFMT = $(shell go env GOROOT)/bin/gofmt

.PHONY: test
test: build tools/bin/testreport ## Run every test, those of the whole system on the embedded stack included
	@{ go test -json -timeout 20m ./...; cd localstack && go test -json -timeout 20m ./...; } 2>&1 | tools/bin/testreport

.PHONY: fmt
fmt: ## Format the code
	$(GOFMT) -w .

.PHONY: lint
lint: tools/bin/staticcheck ## Check format, go vet and staticcheck
	@unformatted="$$($(GOFMT) -l .)"; if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt: $$unformatted"; exit 1; fi
	go vet ./...
	cd localstack && go vet ./...
	cd tools && go vet ./...
	tools/bin/staticcheck ./...
	cd localstack && ../tools/bin/staticcheck ./...

.PHONY: vuln
vuln: tools/bin/govulncheck tools/bin/vulngate build/vulndb/.done ## Look for known vulnerabilities in code that is reached (offline)
	tools/bin/govulncheck -db "file://$(CURDIR)/build/vulndb" -format json ./... > build/vuln.json
	tools/bin/vulngate < build/vuln.json

.PHONY: template
template: ## Check template.yaml with cfn-lint and the SAM CLI (pip); REQUIRE_SAM=1 fails without them
	@if command -v cfn-lint > /dev/null && command -v sam > /dev/null; then $(MAKE) --no-print-directory template-now; \
	elif [ -n "$(REQUIRE_SAM)" ]; then echo "cfn-lint and sam are required here"; exit 1; \
	else echo "template: cfn-lint or sam is not installed, left out"; fi

.PHONY: template-now
template-now:
	cfn-lint template.yaml
	sam validate --lint --region us-east-1
	sam build --region us-east-1

.PHONY: check
check: lint vuln zip test template ## Everything CI runs
	cd tools && go test ./...

# --- Tools of the checks, in a module of their own ---------------------------------------------------

.PRECIOUS: tools/bin/%
tools/bin/lambdazip tools/bin/testreport tools/bin/vulngate: tools/bin/%: tools/%/main.go
	cd tools && go build -o bin/ ./$*

tools/bin/%: tools/go.mod tools/go.sum
	cd tools && go build -o bin/ tool

# The advisories come as a Go module, so that the check needs no network of its own.
build/vulndb/.done: tools/bin/indexdb tools/go.mod
	rm -rf build/vulndb
	mkdir -p build/vulndb
	tools/bin/indexdb -vulns "$$(cd tools && go list -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv" -out build/vulndb
	@touch build/vulndb/.done

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin build tools/bin .aws-sam
