# The service alone; PostgreSQL is given by DATABASE_URL.
FROM node:22-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts --loglevel=error
COPY migrations migrations
COPY src src
USER node
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
CMD ["node", "src/main.ts"]
