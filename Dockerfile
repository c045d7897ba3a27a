# One image for the three services; the command says which one. PostgreSQL is given by DATABASE_URL.
FROM node:22.23.3-bookworm-slim@sha256:43ac6c60b8f89723f746e8a92ce91abd5017e627ce1ddfe4238355d3a30b772c

# The runner runs steps in bash and reads repositories with git; the project is mounted, mostly with
# another owner than the user below.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bash ca-certificates git \
 && rm -rf /var/lib/apt/lists/* \
 && git config --system --add safe.directory /workspace

ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY scripts/supply-chain scripts/supply-chain
RUN npm ci --omit=dev --ignore-scripts --loglevel=error \
 && node scripts/supply-chain/verify-binaries.mjs
COPY migrations migrations
COPY src src
RUN mkdir /workspace && chown node:node /workspace

# The loopback of a container is reached by nobody; what is published decides who reaches it. The runner wants a
# token with it, so that whoever starts one sets HOST as well.
ENV GATEWAY_HOST=0.0.0.0 NOTIFY_HOST=0.0.0.0

# Named in the build info of each service.
ARG COMMIT=unknown
ENV GATEWAY_COMMIT=$COMMIT NOTIFY_COMMIT=$COMMIT RUNNER_COMMIT=$COMMIT

# The user `node`, by number, so that a cluster sees that it is not root.
USER 1000:1000
EXPOSE 8080 9090 9100 9200 9091 4800 9092
STOPSIGNAL SIGTERM
CMD ["node", "src/main.ts"]
