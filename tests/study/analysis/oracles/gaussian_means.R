# Writes gaussian_means.json: means and pairwise contrasts of linear mixed models with Satterthwaite's degrees of freedom.
# Run in this folder:  Rscript gaussian_means.R   (lmerTest 3.1.3, emmeans 1.8.4)
suppressMessages({library(lmerTest); library(emmeans); library(jsonlite)})
set.seed(4)
tight <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e5))
cake <- transform(lme4::cake, recipe = as.character(recipe), temperature = as.character(temperature),
                  baking = paste0(recipe, replicate))[c("baking", "recipe", "temperature", "angle")]
chicks <- transform(as.data.frame(ChickWeight), time = Time / 10, chick = paste0("c", Chick), diet = paste0("d", Diet))
chicks <- chicks[c("chick", "diet", "time", "weight")]
uneven <- data.frame(id = paste0("p", sample(12, 150, TRUE, (1:12)^1.5)), arm = sample(c("a", "b", "c"), 150, TRUE, c(5, 2, 1)))
uneven$time <- round(rnorm(12)[as.integer(factor(uneven$id))] + 0.3 * (uneven$arm == "b") + rnorm(150), 3)
describe <- function(name, formula, spec, data) {
  fit <- lmer(as.formula(formula), data, control = tight)
  means <- emmeans(fit, spec, lmer.df = "satterthwaite")
  pairs_ <- as.data.frame(summary(pairs(means), infer = TRUE, adjust = "none"))
  shown <- as.data.frame(means)
  list(name = name, formula = formula, spec = spec, data = data, means = shown[c("emmean", "SE", "df", "lower.CL", "upper.CL")],
       contrasts = pairs_[c("estimate", "SE", "df", "lower.CL", "upper.CL", "p.value")])
}
write_json(list(
  describe("intercepts", "angle ~ recipe * temperature + (1|baking)", "recipe", cake),
  describe("slopes", "weight ~ diet * time + (time|chick)", "diet", chicks),
  describe("unbalanced", "time ~ arm + (1|id)", "arm", uneven)),
  "gaussian_means.json", digits = NA, auto_unbox = TRUE, dataframe = "columns")
